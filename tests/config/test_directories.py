"""Where the user's config file is."""

from pathlib import Path

import pytest

from antiphon.config.directories import config_dir

HOME = Path.home()


@pytest.mark.parametrize(
    ("environment", "platform", "expected"),
    [
        ({}, "linux", HOME / ".config/antiphon"),
        ({"XDG_CONFIG_HOME": "/x"}, "linux", Path("/x/antiphon")),
        ({"XDG_CONFIG_HOME": "not/absolute"}, "linux", HOME / ".config/antiphon"),
        ({"XDG_CONFIG_HOME": "/x"}, "darwin", HOME / "Library/Application Support/antiphon"),
        ({"ANTIPHON_CONFIG_DIR": "/mine", "XDG_CONFIG_HOME": "/x"}, "linux", Path("/mine")),
        ({"ANTIPHON_CONFIG_DIR": "~/mine"}, "linux", HOME / "mine"),
        ({"ANTIPHON_STATE_DIR": "/mine"}, "linux", HOME / ".config/antiphon"),
    ],
)
def test_config_is_where_the_platform_or_the_user_wants_it(
    environment: dict[str, str], platform: str, expected: Path
) -> None:
    assert config_dir(environment, platform) == expected
