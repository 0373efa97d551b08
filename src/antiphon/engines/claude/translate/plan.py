"""The plan: `TodoWrite` replaces it whole, the task tools change it one by one; what counts is that a call succeeded."""

from typing import TYPE_CHECKING, Any, Final

from antiphon.protocol import v1

if TYPE_CHECKING:
    from collections.abc import Iterator, Mapping

__all__ = ["TOOLS", "Planning"]

TOOLS: Final = frozenset({"TodoWrite", "TaskCreate", "TaskUpdate", "TaskList", "TaskGet"})
"""Their calls are told as the plan and not as calls."""


class _Task:
    __slots__ = ("status", "subject")

    def __init__(self, subject: str, status: str = "pending") -> None:
        self.subject = subject
        self.status = status


class Planning:
    """Keeps the books."""

    def __init__(self) -> None:
        self._tasks: dict[str, _Task] = {}
        self._told: list[v1.PlanEntry] = []

    def came_to(self, name: str, input: "Mapping[str, Any]", structured: object, failed: bool) -> "Iterator[v1.Plan]":
        """A call is over. One that failed changed nothing, and `TodoWrite` says it all in its input."""
        if failed:
            return
        result = structured if isinstance(structured, dict) else {}
        if name == "TodoWrite":
            self._write(input)
        elif name == "TaskCreate":
            self._create(input, result)
        elif name == "TaskUpdate":
            self._update(input)
        elif name == "TaskList":
            self._list(result)
        yield from self._news()

    def clear(self) -> "Iterator[v1.Plan]":
        """The conversation begins anew."""
        self._tasks = {}
        yield from self._news()

    def _write(self, input: "Mapping[str, Any]") -> None:
        todos = input.get("todos")
        if isinstance(todos, list):
            self._tasks = {
                str(number): _Task(_text(todo, "content", "subject", "title"), str(todo.get("status", "")))
                for number, todo in enumerate(todos, 1)
                if isinstance(todo, dict)
            }

    def _create(self, input: "Mapping[str, Any]", result: "Mapping[str, Any]") -> None:
        made = result.get("task")
        made = made if isinstance(made, dict) else {}
        subject = _text(made, "subject") or _text(input, "subject", "description")
        id = str(made.get("id") or len(self._tasks) + 1)
        self._tasks[id] = _Task(subject)

    def _update(self, input: "Mapping[str, Any]") -> None:
        id, status = str(input.get("taskId", "")), input.get("status")
        if status == "deleted":
            self._tasks.pop(id, None)
            return
        task = self._tasks.get(id)
        if task is None:  # made before a resume
            if not _text(input, "subject"):
                return
            task = self._tasks[id] = _Task("")
        task.subject = _text(input, "subject") or task.subject
        if isinstance(status, str):
            task.status = status

    def _list(self, result: "Mapping[str, Any]") -> None:
        tasks = result.get("tasks")
        if isinstance(tasks, list):
            self._tasks = {
                str(task.get("id", number)): _Task(_text(task, "subject"), str(task.get("status", "")))
                for number, task in enumerate(tasks, 1)
                if isinstance(task, dict)
            }

    def _news(self) -> "Iterator[v1.Plan]":
        entries = [
            v1.PlanEntry(
                content=task.subject or f"Task {id}",
                priority=v1.PlanPriority.MEDIUM,
                status=_STATUS.get(task.status, v1.PlanStatus.PENDING),
            )
            for id, task in self._tasks.items()
        ]
        if entries != self._told:
            self._told = entries
            yield v1.Plan(entries=entries)


_STATUS: Final = {
    "completed": v1.PlanStatus.COMPLETED,
    "in_progress": v1.PlanStatus.IN_PROGRESS,
    "pending": v1.PlanStatus.PENDING,
}


def _text(fields: "Mapping[str, Any]", *names: str) -> str:
    return next((value for name in names if isinstance(value := fields.get(name), str) and value), "")
