"""The files of the page over HTTP: no token, headers that keep the page safe, and addresses that are kept for ever or not at all."""

import gzip
import re

import pytest

from antiphon.web.assets import PAGE_POLICY, page_hash
from tests.gateway.processes import Gateway, call

pytestmark = pytest.mark.slow  # each starts a gateway


def test_the_page_is_for_everyone_and_never_kept(gateway: Gateway) -> None:
    page = gateway.ask("/")
    assert page.status == 200 and page.headers["content-type"] == "text/html; charset=utf-8"
    assert page.headers["cache-control"] == "no-store"
    assert page.headers["content-security-policy"] == PAGE_POLICY
    assert page.headers["x-content-type-options"] == "nosniff" and page.headers["referrer-policy"] == "no-referrer"
    assert page.headers["cross-origin-opener-policy"] == page.headers["cross-origin-resource-policy"] == "same-origin"
    policy = dict(part.partition(" ")[::2] for part in PAGE_POLICY.split("; "))
    assert policy["script-src"] == policy["style-src"] == "'self'" and policy["default-src"] == "'none'"
    assert policy["require-trusted-types-for"] == "'script'" and policy["frame-ancestors"] == "'none'"


def test_every_file_that_the_page_names_is_there_and_kept_for_ever(gateway: Gateway) -> None:
    names = re.findall(rf'="(/static/{page_hash()}/[^"]+)"', gateway.ask("/").body.decode())
    assert f"/static/{page_hash()}/js/main.js" in names
    for name in names:
        answer = gateway.ask(name)
        assert answer.status == 200 and answer.headers["cache-control"] == "max-age=31536000, immutable", name
        assert answer.headers["content-type"].startswith(("text/javascript", "text/css")), name


def test_a_client_learns_the_version_of_the_page(gateway: Gateway) -> None:
    with gateway.open_socket() as opened:
        call(opened, 0, "initialize", protocolVersion=1, clientCapabilities={})
        assert call(opened, 1, "_antiphon/gateway/info")["result"]["page"] == page_hash()


def test_files_of_another_version_are_not_there(gateway: Gateway) -> None:
    for path in ("/static/0000000000000000/js/main.js", f"/static/{page_hash()}/js/none.js", "/static/", "/icons/none"):
        answer = gateway.ask(path)
        assert answer.status == 404 and answer.headers["cache-control"] == "no-store"


def test_paths_lead_to_no_other_file(gateway: Gateway) -> None:
    for path in ("../../assets.py", "js/../../assets.py", "%2e%2e/assets.py", "/etc/passwd", ".."):
        assert gateway.ask(f"/static/{page_hash()}/{path}").status in (400, 404), path


def test_a_file_is_sent_compressed_to_those_that_take_it(gateway: Gateway) -> None:
    path = f"/static/{page_hash()}/vendor/preact.js"
    plain, packed = gateway.ask(path), gateway.ask(path, {"Accept-Encoding": "br, gzip;q=0.8"})
    assert "content-encoding" not in plain.headers and packed.headers["content-encoding"] == "gzip"
    assert gzip.decompress(packed.body) == plain.body and len(packed.body) < len(plain.body) / 2
    assert gateway.ask(path, {"Accept-Encoding": "gzip;q=0"}).body == plain.body


def test_head_has_the_headers_alone(gateway: Gateway) -> None:
    for path in ("/", f"/static/{page_hash()}/js/main.js", "/app.webmanifest"):
        whole, head = gateway.ask(path), gateway.ask(path, method="HEAD")
        assert head.status == 200 and head.body == b""
        assert head.headers["content-length"] == str(len(whole.body)) == whole.headers["content-length"]


def test_what_has_an_address_that_stays_is_asked_about_each_time(gateway: Gateway) -> None:
    first = gateway.ask("/app.webmanifest")
    assert first.headers["cache-control"] == "no-cache" and first.headers["content-type"] == "application/manifest+json"
    again = gateway.ask("/app.webmanifest", {"If-None-Match": first.headers["etag"]})
    assert (again.status, again.body) == (304, b"")


def test_no_other_method_is_taken(gateway: Gateway) -> None:
    answer = gateway.ask("/", method="POST", body={})
    assert answer.status == 405 and answer.headers["allow"] == "GET, HEAD"


@pytest.mark.parametrize(
    ("headers", "status"),
    [
        ({"Host": "evil.example"}, 421),
        ({"Origin": "https://evil.example"}, 403),
        ({"Sec-Fetch-Site": "cross-site"}, 403),
    ],
)
def test_pages_of_others_get_no_file(gateway: Gateway, headers: dict[str, str], status: int) -> None:
    for path in ("/", f"/static/{page_hash()}/js/main.js", "/app.webmanifest", "/icons/icon.svg", "/api/login"):
        assert gateway.ask(path, headers).status == status, path


def test_an_old_cookie_is_no_obstacle_to_the_page(gateway: Gateway) -> None:
    old = {"Cookie": "antiphon=old"}
    assert gateway.ask("/", old).status == gateway.ask(f"/static/{page_hash()}/js/main.js", old).status == 200
    assert gateway.ask("/api/login", old).status == 401


def test_a_browser_is_known_by_its_device_and_never_by_the_name_of_another(gateway: Gateway) -> None:
    def name_of(device: str) -> str:
        body = {"code": gateway.admin(action="launch")["code"], "device": device}
        return str(gateway.ask("/api/login", gateway.origin, method="POST", body=body).json["name"])

    assert re.fullmatch(r"Firefox on Linux \d+", name_of("Firefox on Linux"))
    for other in ("", "browser 1", "x" * 31, "a\nb", " owner"):
        assert re.fullmatch(r"browser \d+", name_of(other)), other
