"""What a request shows to be let in, read in one pass."""

from antiphon.gateway.access.checks import COOKIE, AccessRules, secret_of
from antiphon.transports.asgi.connections import Scope


def shown(cookie: str) -> tuple[str, str]:
    scope: Scope = {"type": "http", "headers": [(b"cookie", cookie.encode())]}
    return secret_of(scope, AccessRules())


def test_the_cookie_of_this_gateway_is_found_among_others() -> None:
    name = AccessRules().cookie
    assert shown(f"a=b; {name}=secret; c") == ("secret", COOKIE)
    assert shown(f"x{name}=secret; {name}=") == ("", "")


def test_a_quoted_cookie_is_taken_as_it_is_written() -> None:
    """To take the quotes away, the standard library needs the square of the length: seconds for one header."""
    name = AccessRules().cookie
    assert shown(f'{name}="\\101"') == ('"\\101"', COOKIE)
