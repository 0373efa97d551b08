"""Which lines of a file are the conversation as it stands: those that the last one follows from, and what belongs to them.

The user may go back and ask another way; the lines of before stay in the file and are not told again.
"""

from antiphon.engines.claude.history.records import Index, Row

__all__ = ["conversation"]


def conversation(index: Index) -> list[Row]:
    """The lines that are the conversation, in the order in which they were written."""
    rows = index.rows
    places = {row.uuid: place for place, row in enumerate(rows)}
    chain = _chain(rows, places, _leaf(index, places))
    kept = chain | _beside(rows, chain)
    return [row for place, row in enumerate(rows) if place in kept]


def _leaf(index: Index, places: dict[str, int]) -> int | None:
    if index.rewound and (index.leaf is None or index.leaf in places):
        return None if index.leaf is None else places[index.leaf]
    # A remark that follows nothing, such as a note of the program itself, is no end of a conversation.
    ends = (
        place for place, row in reversed([*enumerate(index.rows)]) if row.parent or row.type in ("user", "assistant")
    )
    return next(ends, None)


def _chain(rows: list[Row], places: dict[str, int], leaf: int | None) -> set[int]:
    chain: set[int] = set()
    place = leaf
    while place is not None and place not in chain:
        chain.add(place)
        parent = rows[place].parent
        if parent is None:
            break
        # A line that is lost must not take all before it along: go on with the one above.
        place = places.get(parent, place - 1 if place else None)
    return chain


def _beside(rows: list[Row], chain: set[int]) -> set[int]:
    """Lines beside the chain that belong to it.

    Of calls made at once, each result follows its own call, and the chain goes on from one of them only. The other blocks of a
    message, and a mark that the conversation was compacted, may hang beside it too.
    """
    messages = {rows[place].message_id for place in chain if rows[place].type == "assistant"} - {None}
    kept = {place for place, row in enumerate(rows) if row.type == "assistant" and row.message_id in messages}
    calls = {call for place in kept | chain for call in rows[place].calls}
    answered = {call for place in chain for call in rows[place].results}
    uuids = {rows[place].uuid for place in chain}
    marks: set[str] = set()
    for place, row in enumerate(rows):
        if row.results:
            missing = calls.intersection(row.results) - answered
            answered |= missing
            if missing:
                kept.add(place)
        elif row.subtype == "compact_boundary" and row.parent in uuids:
            kept.add(place)
            marks.add(row.uuid)
        elif row.parent in marks:  # the summary
            kept.add(place)
    return kept
