"""Tokens that all gateways of a fleet share: what one gateway does holds at all of them, also after faults of the broker."""

import asyncio
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager
from hashlib import sha256
from pathlib import Path
from typing import Any

import msgspec
import pytest

from antiphon.fleet.access import tokens as fleet_tokens
from antiphon.fleet.access.records import TokenRecord, code_subject, token_subject
from antiphon.fleet.access.tokens import FleetTokens
from antiphon.fleet.broker import BrokerAway, Fenced
from antiphon.fleet.simulation import SimulatedBroker, SimulatedServer
from antiphon.gateway.access.tokens import BROWSERS, LAUNCH_CODES, LAUNCH_LIFETIME, TOKEN_FILE, AccessToken
from antiphon.gateway.base import AccessRole
from tests.fleet.carriers import virtually
from tests.waits import idle

DRIVE = AccessRole.DRIVE


class Gateway:
    """The tokens of one gateway, and the broker that it uses."""

    def __init__(self, broker: Any, directory: Path | None, name: str) -> None:
        self.broker = broker
        self.directory = Path("nowhere") if directory is None else directory / name
        self.tokens = FleetTokens(broker, self.directory)
        if directory is None:
            self.tokens._keep_file = _no_file  # type: ignore[method-assign]
        else:
            self.directory.mkdir(parents=True, exist_ok=True)
        self.ended: list[AccessToken] = []
        self.tokens.revoked = self.ended.append

    @property
    def own_secret(self) -> str:
        return (self.directory / TOKEN_FILE).read_text(encoding="utf-8").strip()


async def _no_file() -> None:
    """Keep no token file."""


@asynccontextmanager
async def gateways(server: SimulatedServer, directory: Path | None, count: int = 2) -> AsyncIterator[list[Gateway]]:
    """Several gateways of one fleet. Without a directory they have no token files: those are read by threads, which have no virtual clock."""
    made = [Gateway(server.connect(f"gateway {number}"), directory, str(number)) for number in range(count)]
    try:
        for each in made:
            await each.tokens.load()
        await idle()
        yield made
    finally:
        for each in made:
            await each.tokens.close()


def subjects(server: SimulatedServer, prefix: str) -> list[str]:
    """What the broker has."""
    return [subject for subject in server._store._by_subject if subject.startswith(prefix)]


# What one gateway does holds at the others.


async def test_a_token_that_one_gateway_makes_lets_in_at_the_others_until_one_of_them_revokes_it(
    tmp_path: Path,
) -> None:
    async with gateways(SimulatedServer(), tmp_path, 3) as (one, two, three):
        token, secret = await one.tokens.create("token", "phone", DRIVE, lifetime=1000)
        await idle()
        for each in (one, two, three):
            assert each.tokens.find(secret) == token and token in each.tokens.list("token")
        assert await two.tokens.revoke(token.id) == token
        await idle()
        for each in (one, two, three):
            assert each.tokens.find(secret) is None and each.ended == [token] and not each.tokens.is_good(token)
        assert await three.tokens.revoke(token.id) is None


async def test_the_broker_gets_digests_and_no_secrets(tmp_path: Path) -> None:
    server = SimulatedServer()
    async with gateways(server, tmp_path) as (one, _):
        _, secret = await one.tokens.create("share", "link", DRIVE, sessions=["key"])
        code = await one.tokens.launch_code()
        redeemed = await one.tokens.redeem(code)
        assert redeemed is not None
        stored = "".join(f"{each.message}" for each in server._store._entries)
        for hidden in (secret, code, redeemed[1], one.own_secret):
            assert hidden not in stored


async def test_numbers_are_those_of_the_messages_that_made_the_tokens_and_the_same_everywhere(tmp_path: Path) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        made = [(await each.tokens.create("token", "phone", DRIVE))[0] for each in (one, two, one)]
        await idle()
        messages = [await one.broker.last(token_subject(token.digest.hex())) for token in made]
        assert [token.id for token in made] == [message.sequence for message in messages]
        assert one.tokens.list("token") == two.tokens.list("token")
        assert [token.name for token in made] == ["phone", f"phone {made[1].id}", f"phone {made[2].id}"]


async def test_browsers_of_a_share_are_bounded_and_end_with_it_at_all_gateways(tmp_path: Path) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        share, _ = await one.tokens.create("share", "link", DRIVE, sessions=["key"])
        await idle()
        secrets = []
        for number in range(BROWSERS + 2):
            made = await (one, two)[number % 2].tokens.create_for_browser(share)
            assert made is not None
            secrets.append(made[1])
            await idle()
        assert len(one.tokens.browsers(share.id)) == len(two.tokens.browsers(share.id)) == BROWSERS
        await one.tokens.revoke(share.id)
        await idle()
        assert not any(each.tokens.find(secret) for secret in secrets for each in (one, two))
        assert len(two.ended) == BROWSERS + 3


async def test_a_browser_that_signs_in_at_one_gateway_while_another_revokes_its_token_is_not_let_in(
    tmp_path: Path,
) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        for turn in range(12):
            token, _ = await one.tokens.create("token", "phone", DRIVE)
            await idle()
            signing_in = asyncio.ensure_future(two.tokens.create_for_browser(token))
            for _ in range(turn):
                await asyncio.sleep(0)
            await one.tokens.revoke(token.id)
            made = await signing_in
            await idle()
            for each in (one, two):
                assert made is None or each.tokens.find(made[1]) is None
                assert not each.tokens.list("browser")


async def test_the_token_of_the_owner_is_in_the_directory_of_its_gateway_and_kept_there(tmp_path: Path) -> None:
    server = SimulatedServer()
    async with gateways(server, tmp_path) as (one, two):
        before = [one.own_secret, two.own_secret]
        assert before[0] != before[1]
        assert [one.tokens.find(secret) for secret in before] == [two.tokens.find(secret) for secret in before]
        assert {token.name for token in one.tokens.list("token")} > {"owner"}
        assert all(token.role is AccessRole.ADMIN for token in one.tokens.list("token"))
    async with gateways(server, tmp_path) as (one, two):
        assert [one.own_secret, two.own_secret] == before and len(one.tokens.list("token")) == 2


async def test_deleting_a_session_revokes_its_shares_once(tmp_path: Path) -> None:
    server = SimulatedServer()
    async with gateways(server, tmp_path, 3) as made:
        one, two, _ = made
        share, secret = await one.tokens.create("share", "link", DRIVE, sessions=["key"])
        other, _ = await one.tokens.create("share", "other", DRIVE, sessions=["another"])
        await idle()
        assert await two.tokens.create_for_browser(share) is not None
        await idle()
        before = server._store.sequence
        await asyncio.gather(*(each.tokens.forget_session("key") for each in made))
        await idle()
        assert server._store.sequence == before + 1
        for each in made:
            assert each.tokens.find(secret) is None and each.tokens.list("share", "browser") == [other]
            assert len(each.ended) == 2


# Names.


async def test_two_gateways_that_make_tokens_of_one_name_at_once_make_two_names(tmp_path: Path) -> None:
    for delay in range(10):
        server = SimulatedServer(seed=delay)
        async with gateways(server, tmp_path / str(delay)) as made:
            server.delay = (0.0, 0.001)
            tokens = await asyncio.gather(
                *(each.tokens.create("token", "phone", DRIVE) for each in made for _ in range(3))
            )
            names = [token.name for token, _ in tokens]
            assert len({*names}) == 6 and names.count("phone") <= 1


async def test_a_name_is_free_again_when_its_token_was_revoked(tmp_path: Path) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        first, _ = await one.tokens.create("token", "phone", DRIVE)
        second, _ = await two.tokens.create("token", "phone", DRIVE)
        assert second.name == f"phone {second.id}"
        await two.tokens.revoke(second.id)
        assert (await two.tokens.create("token", "phone", DRIVE))[0].name != "phone", "the first one has it"
        await idle()
        await two.tokens.revoke(first.id)
        assert (await one.tokens.create("token", "phone", DRIVE))[0].name == "phone"


async def test_a_name_whose_token_was_never_stored_can_be_taken_over_and_the_first_cannot_use_it_any_more(
    tmp_path: Path,
) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        fence = await one.tokens._names.claim("phone", "aa")
        assert fence is not None
        token, _ = await two.tokens.create("token", "phone", DRIVE)
        assert token.name == "phone"
        late = TokenRecord("token", "phone", DRIVE, 0.0)
        with pytest.raises(Fenced):
            await one.tokens._append(token_subject("aa"), msgspec.json.encode(late), fence=fence)


async def test_a_token_that_is_stored_just_before_its_name_is_taken_over_keeps_it(tmp_path: Path) -> None:
    """Between the look of the second gateway and its claim."""
    server = SimulatedServer()
    async with gateways(server, tmp_path) as (one, two):
        last = two.broker.last

        async def slow_last(subject: str) -> Any:
            found = await last(subject)
            if subject.startswith(token_subject("")) and found is None:
                server.freeze(two.broker)
                asyncio.get_running_loop().call_later(0.05, server.thaw, two.broker)
            return found

        store, others = one.tokens._store, []

        async def late_store(*given: Any) -> Any:
            two.broker.last = slow_last
            others.append(asyncio.ensure_future(two.tokens.create("token", "phone", DRIVE)))
            await idle()
            return await store(*given)

        one.tokens._store = late_store  # type: ignore[assignment, method-assign]
        token, _ = await one.tokens.create("token", "phone", DRIVE)
        names = {token.name, (await others[0])[0].name}
        assert len(names) == 2 and token.name == "phone"
        assert (await two.tokens.create("token", "phone", DRIVE))[0].name != "phone", "it is still known who has it"
        await idle()
        await two.tokens.revoke(token.id)
        assert (await two.tokens.create("token", "phone", DRIVE))[0].name == "phone", "the second has another"


async def test_a_token_whose_name_was_taken_over_before_it_was_stored_gets_another(tmp_path: Path) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        store, others = one.tokens._store, []

        async def late_store(*given: Any) -> Any:
            others.append(await two.tokens.create("token", "phone", DRIVE))
            return await store(*given)

        one.tokens._store = late_store  # type: ignore[assignment, method-assign]
        token, _ = await one.tokens.create("token", "phone", DRIVE)
        assert others[0][0].name == "phone" and token.name == f"phone {token.id}"


# Launch codes.


async def test_a_launch_code_of_one_gateway_is_good_at_another_and_once_in_the_fleet(tmp_path: Path) -> None:
    server = SimulatedServer()
    async with gateways(server, tmp_path, 3) as made:
        for _ in range(5):
            code = await made[0].tokens.launch_code(DRIVE)
            found = await asyncio.gather(*(each.tokens.redeem(code, "Firefox on Linux") for each in made[1:] * 3))
            (token, secret), *others = [each for each in found if each is not None]
            assert not others and token.name == f"Firefox on Linux {token.id}" and token.role is DRIVE
            await idle()
            assert all(each.tokens.find(secret) == token for each in made)
            assert await made[0].tokens.redeem(code) is None
        assert await made[0].tokens.redeem("x") is None and not subjects(server, "acp.a.code.")


async def test_a_launch_code_of_a_token_makes_a_browser_of_that_and_none_when_it_was_revoked(tmp_path: Path) -> None:
    async with gateways(SimulatedServer(), tmp_path) as (one, two):
        token, _ = await one.tokens.create("token", "phone", DRIVE)
        codes = [await one.tokens.launch_code(AccessRole.WATCH, token.id) for _ in range(2)]
        await idle()
        made = await two.tokens.redeem(codes[0])
        assert made is not None and (made[0].parent, made[0].role) == (token.id, AccessRole.WATCH)
        await one.tokens.revoke(token.id)
        await idle()
        assert await two.tokens.redeem(codes[1]) is None


async def test_launch_codes_that_wait_are_bounded_for_each_token_and_old_ones_are_removed(tmp_path: Path) -> None:
    skipped = 0.0
    server = SimulatedServer(lambda: asyncio.get_running_loop().time() + skipped)
    async with gateways(server, tmp_path) as (one, two):
        other = await one.tokens.launch_code(DRIVE, 7)
        codes = [await (one, two)[number % 2].tokens.launch_code() for number in range(LAUNCH_CODES + 1)]
        assert len(subjects(server, "acp.a.code.")) == LAUNCH_CODES + 1
        assert await one.tokens.redeem(codes[0]) is None and await one.tokens.redeem(codes[1]) is not None
        skipped = LAUNCH_LIFETIME + 1
        assert await two.tokens.redeem(codes[2]) is None
        last = await one.tokens.launch_code()
        assert subjects(server, "acp.a.code.") == [code_subject(sha256(last.encode()).digest())]
        assert await two.tokens.redeem(other) is None


async def test_clocks_of_gateways_do_not_matter(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """All times are those of the broker: here its clock shows another year than ours, whatever that is."""
    monkeypatch.setattr("time.time", lambda: 12345.0)
    skipped = 0.0
    server = SimulatedServer(lambda: asyncio.get_running_loop().time() + skipped)
    async with gateways(server, tmp_path) as (one, two):
        token, secret = await one.tokens.create("share", "link", DRIVE, sessions=["key"], lifetime=3600)
        assert token.expires is not None and token.expires - one.tokens.now() == pytest.approx(3600, abs=1)
        assert token.created > 1_700_000_000
        await idle()
        assert two.tokens.find(secret) is not None
        skipped = 3601.0
        assert two.tokens.find(secret) is None and one.tokens.find(secret) is None


# Faults.


def test_what_happened_while_a_gateway_was_away_holds_there_as_soon_as_it_is_back() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            old, _ = await one.tokens.create("token", "old", DRIVE)
            cleaned, _ = await one.tokens.create("token", "cleaned", DRIVE)
            await asyncio.sleep(1)
            server.cut(two.broker)
            await one.tokens.revoke(old.id)
            await one.tokens.revoke(cleaned.id)
            await one.broker.remove(token_subject(cleaned.digest.hex()))  # as after a day
            _, new = await one.tokens.create("token", "new", DRIVE)
            await asyncio.sleep(30)
            assert two.tokens.is_good(old) and two.tokens.problem and not one.tokens.problem
            server.mend(two.broker)
            await asyncio.sleep(0.5)
            assert {*two.ended} == {old, cleaned} and not two.tokens.is_good(old)
            assert two.tokens.find(new) is not None and not two.tokens.problem

    virtually(scenario)


@pytest.mark.parametrize("seed", range(10))
def test_a_token_that_an_old_copy_of_the_stream_does_not_have_yet_is_not_taken_for_revoked(seed: int) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            server.stale = 1.0
            secrets = [(await one.tokens.create("token", "new", DRIVE))[1] for _ in range(5)]
            await idle()
            server.cut(two.broker)
            server.mend(two.broker)
            await asyncio.sleep(8)
            assert not two.ended and all(two.tokens.find(secret) for secret in secrets)

    virtually(scenario, seed)


def test_a_gateway_that_could_not_catch_up_at_once_does_so_later() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            cleaned, _ = await one.tokens.create("token", "cleaned", DRIVE)
            await asyncio.sleep(1)
            server.cut(two.broker)
            await one.tokens.revoke(cleaned.id)
            await one.broker.remove(token_subject(cleaned.digest.hex()))
            read = two.broker.read

            async def failing(*given: Any) -> Any:
                two.broker.read = read
                raise BrokerAway("no server reads messages now")

            two.broker.read = failing
            server.mend(two.broker)
            await asyncio.sleep(1)
            assert two.tokens.is_good(cleaned)
            await asyncio.sleep(fleet_tokens.LOOK_INTERVAL)
            assert two.ended == [cleaned]

    virtually(scenario)


def test_a_change_whose_message_was_lost_is_found_within_seconds() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            token, _ = await one.tokens.create("token", "old", DRIVE)
            browser = await one.tokens.create_for_browser(token)
            assert browser is not None
            await asyncio.sleep(1)
            assert two.tokens._follow is not None
            two.tokens._follow.end()  # all that would come is lost
            await one.tokens.revoke(token.id)
            parent, _ = await one.tokens.create("token", "new", DRIVE)
            child = await one.tokens.create_for_browser(parent)
            assert child is not None and two.tokens.is_good(token)
            await asyncio.sleep(fleet_tokens.LOOK_INTERVAL + 0.1)
            assert two.ended == [token, browser[0]] and two.tokens.find(child[1]) is not None

    virtually(scenario)


def test_a_browser_whose_record_comes_before_that_of_its_token_is_let_in_when_both_are_there() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            take = two.tokens._apply
            held: list[Any] = []
            two.tokens._follow.end()  # type: ignore[union-attr]
            two.broker.follow("acp.a.token.*", held.append)
            await asyncio.sleep(0.1)
            token, _ = await one.tokens.create("token", "new", DRIVE)
            child = await one.tokens.create_for_browser(token)
            assert child is not None and len(held) == 2
            take(held[1])
            assert two.tokens.find(child[1]) is None
            take(held[0])
            assert two.tokens.find(child[1]) == child[0]
            take(held[1])
            assert [each.id for each in two.tokens.browsers(token.id)] == [child[0].id]

    virtually(scenario)


def test_a_revocation_that_cannot_be_stored_is_an_error_ends_the_token_here_and_is_not_forgotten(
    tmp_path: Path,
) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            token, secret = await one.tokens.create("token", "phone", DRIVE)
            await asyncio.sleep(1)
            server.cut(one.broker)
            with pytest.raises(BrokerAway, match="other gateways may let it in") as caught:
                await one.tokens.revoke(token.id)
            assert caught.value.hint and one.ended == [token] and one.tokens.find(secret) is None
            assert "phone" in one.tokens.problem and two.tokens.find(secret) is not None
            with pytest.raises(BrokerAway):
                await one.tokens.revoke(token.id)
            server.mend(one.broker)
            await asyncio.sleep(1)
            assert two.ended == [token] and one.ended == [token] and not one.tokens.problem
            assert one.tokens.find(secret) is None

    virtually(scenario)


def test_nothing_is_made_without_the_broker_and_what_is_known_still_lets_in() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, _):
            _, secret = await one.tokens.create("token", "known", DRIVE)
            code = await one.tokens.launch_code()
            server.cut(one.broker)
            for make in (
                one.tokens.create("token", "phone", DRIVE),
                one.tokens.create("browser", "phone", DRIVE, is_numbered=True),
                one.tokens.launch_code(),
                one.tokens.redeem(code),
            ):
                with pytest.raises(BrokerAway) as caught:
                    await make
                assert caught.value.hint and caught.value.recoverable
            assert one.tokens.find(secret) is not None
            server.mend(one.broker)
            await asyncio.sleep(1)
            assert await one.tokens.redeem(code) is not None

    virtually(scenario)


def test_a_gateway_does_not_start_without_the_broker() -> None:
    async def scenario(server: SimulatedServer) -> None:
        broker = server.connect()
        server.cut(broker)
        tokens = FleetTokens(broker, Path("nowhere"))
        with pytest.raises(BrokerAway) as caught:
            await tokens.load()
        assert caught.value.hint
        await tokens.close()

    virtually(scenario)


@pytest.mark.parametrize("seed", range(20))
def test_answers_that_are_lost_and_copies_that_are_old_make_nothing_twice_and_forget_nothing(seed: int) -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None, 3) as made:
            server.unsure, server.stale, server.delay = 0.3, 0.5, (0.0, 0.02)
            gone: list[str] = []
            kept: list[str] = []

            async def use(number: int) -> None:
                for turn in range(4):
                    one, two = server.random.sample(made, 2)
                    token, secret = await one.tokens.create("token", f"name {turn}", DRIVE)
                    await asyncio.sleep(0.5)
                    browser = await two.tokens.create_for_browser(token)
                    assert browser is not None
                    code = await one.tokens.launch_code(DRIVE, token.id)
                    used = await asyncio.gather(*(each.tokens.redeem(code) for each in made))
                    assert sum(each is not None for each in used) == 1
                    if (number + turn) % 2:
                        await two.tokens.revoke(token.id)
                        gone.extend((secret, browser[1]))
                    else:
                        kept.extend((secret, browser[1]))

            await asyncio.gather(*(use(number) for number in range(3)))
            server.unsure = 0.0
            server.cut(made[0].broker)
            server.mend(made[0].broker)
            await asyncio.sleep(2 * fleet_tokens.LOOK_INTERVAL)
            names = [token.name for token in made[0].tokens.list("token")]
            assert len(names) == len({*names})
            for each in made:
                assert not any(each.tokens.find(secret) for secret in gone)
                assert all(each.tokens.find(secret) for secret in kept)
                assert each.tokens.list("token", "share", "browser") == made[0].tokens.list("token", "share", "browser")

    virtually(scenario, seed)


def test_records_of_tokens_that_ended_long_ago_are_removed(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(fleet_tokens, "CLEAN_INTERVAL", 1.0)
    monkeypatch.setattr(fleet_tokens, "KEPT", 10.0)

    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            kept = subjects(server, "acp.a.token.")
            token, _ = await one.tokens.create("token", "phone", DRIVE)
            await one.tokens.create_for_browser(token)
            await one.tokens.create("browser", "laptop", DRIVE, lifetime=5, is_numbered=True)
            await one.tokens.revoke(token.id)
            assert len(subjects(server, "acp.a.token.")) == len(kept) + 3
            await asyncio.sleep(25)
            assert subjects(server, "acp.a.token.") == kept
            assert [*one.tokens._copies] == [*two.tokens._copies]

    virtually(scenario)


def test_a_record_that_cannot_be_read_lets_no_one_in_and_hides_no_other(caplog: pytest.LogCaptureFixture) -> None:
    async def play() -> None:
        server = SimulatedServer()
        async with gateways(server, None) as (one, two):
            await one.broker.append("acp.a.token.00", b'{"kind": "crown"}')
            await one.broker.append("acp.a.token.xyz", b"?")
            _, secret = await one.tokens.create("token", "phone", DRIVE)
            await idle()
            assert two.tokens.find(secret) is not None and len(two.tokens.list("token")) == 1
        assert "cannot be read" in caplog.text

    asyncio.run(play())


def test_a_stream_that_begins_anew_has_none_of_the_old_tokens() -> None:
    async def scenario(server: SimulatedServer) -> None:
        async with gateways(server, None) as (one, two):
            await one.tokens.create("token", "one", DRIVE)
            await one.tokens.create("token", "two", DRIVE)
            await asyncio.sleep(1)
            await one.broker.remove("acp.a.>")
            for each in (one, two):
                assert isinstance(each.broker, SimulatedBroker)
                server.cut(each.broker)
                server.mend(each.broker)
            await asyncio.sleep(1)
            assert not one.tokens.list("token") and not two.tokens.list("token") and len(one.ended) == 2

    virtually(scenario)
