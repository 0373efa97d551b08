"""A run as JUnit XML: one case for the run, one for each engine, one for each denied action."""

from typing import TYPE_CHECKING
from xml.sax.saxutils import escape, quoteattr

from antiphon.text import one_line, xml_text

if TYPE_CHECKING:
    from antiphon.runs.events import ResultEvent

__all__ = ["junit"]


def junit(result: "ResultEvent", meaning: str) -> str:
    """Return a run as JUnit XML. `meaning` is that of its exit status."""
    problem = None
    if result.exit_code:
        error = result.error
        problem = (error.kind, f"{error.message}\n{error.hint}") if error is not None else ("status", meaning)
    cases = [_case("run", f"{result.agent or 'agent'} answers the prompt", problem, result.text, result.seconds)]
    cases += [_case("engine", f"{each.engine} answers", None, each.text) for each in result.answers]
    cases += [
        _case("engine", f"{each.engine} answers", (each.kind, f"{each.message}\n{each.hint or ''}"))
        for each in result.failures
    ]
    cases += [
        _case("permission", one_line(each.subject), ("denied", each.why)) for each in result.denials if each.unasked
    ]
    failed = sum("<failure" in case for case in cases)
    about = f'tests="{len(cases)}" failures="{failed}" errors="0" time="{result.seconds:.3f}"'
    return (
        '<?xml version="1.0" encoding="UTF-8"?>\n'
        f'<testsuites {about}>\n  <testsuite name="antiphon run" timestamp={quoteattr(result.time)} {about}>\n'
        f"{''.join(cases)}  </testsuite>\n</testsuites>\n"
    )


def _case(area: str, name: str, problem: tuple[str, str] | None, text: str = "", seconds: float = 0.0) -> str:
    head = f'    <testcase classname="antiphon.{area}" name={quoteattr(xml_text(name))} time="{seconds:.3f}">\n'
    body = ""
    if problem is not None:
        kind, message = problem
        first = quoteattr(xml_text(one_line(message.partition("\n")[0])))
        body += f"      <failure type={quoteattr(kind)} message={first}>{escape(xml_text(message.strip()))}</failure>\n"
    if text.strip():
        body += f"      <system-out>{escape(xml_text(text))}</system-out>\n"
    return f"{head}{body}    </testcase>\n"
