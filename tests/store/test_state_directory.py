"""Where our files are."""

from pathlib import Path

from antiphon.config.directories import state_dir
from tests.rows import each_row

HOME = Path.home()


@each_row(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", HOME / ".local/state/antiphon"),
        ({"XDG_STATE_HOME": "/x"}, "linux", Path("/x/antiphon")),
        ({"XDG_STATE_HOME": "not/absolute"}, "linux", HOME / ".local/state/antiphon"),
        ({"XDG_STATE_HOME": ""}, "linux", HOME / ".local/state/antiphon"),
        ({}, "darwin", HOME / "Library/Application Support/antiphon"),
        ({"XDG_STATE_HOME": "/x"}, "darwin", HOME / "Library/Application Support/antiphon"),
        ({"ANTIPHON_STATE_DIR": "/mine", "XDG_STATE_HOME": "/x"}, "linux", Path("/mine")),
        ({"ANTIPHON_STATE_DIR": "/mine"}, "darwin", Path("/mine")),
        ({"ANTIPHON_STATE_DIR": "~/mine"}, "linux", HOME / "mine"),
        ({"ANTIPHON_STATE_DIR": "mine"}, "linux", Path.cwd() / "mine"),
        ({"ANTIPHON_STATE_DIR": ""}, "linux", HOME / ".local/state/antiphon"),
    ],
)
def test_state_is_where_the_platform_or_the_user_wants_it(
    environment: dict[str, str], platform: str, expected: Path
) -> None:
    assert state_dir(environment, platform) == expected


def test_asking_makes_nothing(tmp_path: Path) -> None:
    assert not state_dir({"ANTIPHON_STATE_DIR": str(tmp_path / "new")}).exists()
