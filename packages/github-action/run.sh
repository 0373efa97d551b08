#!/usr/bin/env bash
# Runs the prompt. Inputs come as variables, never as parts of this text, so none of them can become a command.
set -euo pipefail

words=(--github --output stream-json)
option() { if [ -n "$2" ]; then words+=("$1" "$2"); fi; }
each_line() {
  local line
  while IFS= read -r line || [ -n "$line" ]; do
    line="${line#"${line%%[![:space:]]*}"}"
    "$1" "$2" "${line%"${line##*[![:space:]]}"}"
  done <<< "$3"
}
# A line is an option: its name, NAME=VALUE or NAME VALUE.
whole_option() {
  case "${2%% *}" in
    "$2" | *=*) if [ -n "$2" ]; then words+=("$2"); fi ;;
    *) words+=("${2%% *}" "${2#* }") ;;
  esac
}

option --agent "${INPUT_AGENT:-}"
option --model "${INPUT_MODEL:-}"
each_line option --allow "${INPUT_ALLOW:-}"
each_line option --deny "${INPUT_DENY:-}"
option --permission-mode "${INPUT_PERMISSION_MODE:-}"
option --policy "${INPUT_POLICY:-}"
option --append-system-prompt "${INPUT_APPEND_SYSTEM_PROMPT:-}"
option --output-schema "${INPUT_OUTPUT_SCHEMA:-}"
option --max-cost "${INPUT_MAX_COST:-}"
option --max-tokens "${INPUT_MAX_TOKENS:-}"
option --max-turns "${INPUT_MAX_TURNS:-}"
option --timeout "${INPUT_TIMEOUT:-}"
option --file "${INPUT_PROMPT_FILE:-}"
each_line whole_option "" "${INPUT_OPTIONS:-}"
if [ "${INPUT_TRUST_PROJECT:-}" = true ]; then words+=(--trust-project); fi

results="${INPUT_DIRECTORY:-antiphon-result}"
mkdir -p "$results"
if [ ! -e "$results/.gitignore" ]; then echo '*' > "$results/.gitignore"; fi # they are no changes of the project
words+=(--output-file "$results/message.md" --patch "$results/changes.patch" --junit "$results/junit.xml")
if [ -n "${INPUT_PROMPT:-}" ]; then words+=(-- "$INPUT_PROMPT"); fi

antiphon run "${words[@]}" < /dev/null > "$results/events.jsonl"
