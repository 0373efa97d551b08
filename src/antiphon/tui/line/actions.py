"""What lines and keys of the input line do besides sending a prompt: `!command`, pickers, images, the rest of an output."""

import asyncio
import difflib
import re
from collections.abc import Callable, Coroutine, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Final, Protocol

from rich.text import Text

from antiphon.client.attachments import AttachmentError, prompt_blocks
from antiphon.errors import AcpError
from antiphon.protocol import v1
from antiphon.text import size_in_words
from antiphon.tui.line.clipboard import clipboard_image
from antiphon.tui.line.shell import LAST_OUTPUT, ShellOutput, run_command
from antiphon.tui.painter import exact

if TYPE_CHECKING:
    from antiphon.tui.output.unfold import OutputViewer
    from antiphon.tui.window import ChatWindow

__all__ = ["LineActions", "LineOwner", "unknown_command"]

_LAST: Final = re.compile(rf"(?<!\S){re.escape(LAST_OUTPUT)}(?!\S)")
_COMMAND: Final = re.compile(r"/([A-Za-z][\w:.-]*)(?=\s|$)")
"""A command: a word behind the slash. `/etc/hosts` is none."""


class LineOwner(Protocol):
    """What the actions need of the chat."""

    window: "ChatWindow"
    viewer: "OutputViewer"

    def note(self, things: "Sequence[Text] | str", kind: str = "note") -> None:
        """Show a line of our own."""

    def show_error(self, error: AcpError) -> None:
        """Show an error."""

    def run_task(self, work: Coroutine[None, None, None]) -> None:
        """Do something beside everything else."""


class LineActions:
    """The actions of one chat's input line."""

    def __init__(self, owner: LineOwner, images: Path | None) -> None:
        self._owner = owner
        self._images = images
        self._running = asyncio.Lock()
        self._is_hinted = False
        self.last: ShellOutput | None = None
        """The last command that the user ran, and its output."""

    def unfold(self) -> None:
        """Show the whole of the newest output that is shown in part; again, of the one before."""
        self._owner.viewer.show_next()

    def page(self, lines: list[str]) -> None:
        """Show lines in the pager."""
        self._owner.run_task(self._owner.window.page(lines))

    # Commands of the shell.

    def takes(self, text: str, cwd: str) -> bool:
        """Run a line that begins with `!`; False if it is another line."""
        if not text.startswith("!") or not text[1:].strip():
            return False
        self._owner.run_task(self._run(text[1:].strip(), cwd))
        return True

    async def _run(self, command: str, cwd: str) -> None:
        owner = self._owner
        async with self._running:
            shown = owner.window.screen
            head = shown.painter.paint(Text.assemble(("! ", "you"), (exact(command), "bold")))
            lines = ["", *head] if shown.has_lines else head
            try:
                self.last = await owner.window.with_terminal(lambda: run_command(command, cwd, lines))
            except OSError as error:
                owner.show_error(AcpError(f"the command could not be started: {error.strerror or error}"))
                return
            words = [self.last.ending] if self.last.ending else []
            if not self._is_hinted:
                words.append(f"{LAST_OUTPUT} in a prompt hands this output to the agent")
                self._is_hinted = True
            if words:
                owner.note(" · ".join(words), "view")

    # Prompts.

    async def blocks(self, text: str, cwd: str, takes: v1.PromptCapabilities, agent: str) -> list[v1.ContentBlock]:
        """Make the blocks of a typed prompt: what its labels stand for, the files that it mentions, the last output.

        Raises:
            AttachmentError: something that it mentions cannot be attached.
        """
        line, extra = self._owner.window.line, list[v1.ContentBlock]()
        text = line.images.unfold(text)
        if _LAST.search(text):
            if self.last is None:
                raise AttachmentError(
                    f"`{LAST_OUTPUT}` means the output of your last command, and there is none",
                    hint="`!make test` runs a command",
                )
            below = f"(the output of `{self.last.command}` is below)"
            text = _LAST.sub(lambda _: below, text)
            extra.append(v1.TextBlock(f"\n\n{self.last.for_agent()}"))
        first, *others = await asyncio.to_thread(prompt_blocks, text, cwd=cwd, takes=takes, agent=agent)
        if isinstance(first, v1.TextBlock):  # mentions in pasted text are none
            first = v1.TextBlock(line.pastes.unfold(first.text))
        return [first, *others, *extra]

    # Images.

    def paste_image(self) -> None:
        """Put the image of the clipboard on the line."""
        self._owner.run_task(self._paste_image())

    async def _paste_image(self) -> None:
        try:
            if self._images is None:
                raise AcpError("there is no directory to keep the image in")
            path = await asyncio.to_thread(clipboard_image, self._images)
        except (AcpError, OSError) as error:
            self._owner.show_error(error if isinstance(error, AcpError) else AcpError(str(error)))
            return
        window = self._owner.window
        window.input.insert_text(window.line.images.label(f"image, {size_in_words(path.stat().st_size)}", f'@"{path}"'))
        window.refresh()


def unknown_command(
    text: str, ours: Callable[[], Sequence[str]], theirs: Sequence[v1.Command] | None
) -> AcpError | None:
    """Return the error for a `/word` that is a command of no one; None for a prompt, or while the agent's are not known."""
    word = _COMMAND.match(text)
    if word is None or theirs is None:
        return None
    names = [*ours(), *(command.name for command in theirs)]
    if word[1] in names:
        return None
    near = difflib.get_close_matches(word[1], names, 3)
    meant = f"did you mean {', '.join(f'`/{name}`' for name in near)}? " if near else ""
    return AcpError(
        f"there is no command `/{word[1]}`", hint=f"{meant}`/` lists them; `//{word[1]}` sends it to the agent as it is"
    )
