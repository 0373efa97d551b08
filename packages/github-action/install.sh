#!/usr/bin/env bash
# Installs Antiphon in an environment of its own and puts it on the PATH of the steps that follow. An `antiphon` that is there is used.
set -euo pipefail

if [ -z "${INPUT_VERSION:-}${INPUT_REQUIREMENT:-}" ] && command -v antiphon > /dev/null; then
  antiphon --version
  exit 0
fi

extras="policy,schema"
case "${INPUT_AGENT:-}" in
  claude | codex) extras="$extras,$INPUT_AGENT" ;;
  "" | antiphon) extras="$extras,claude,codex" ;;
esac
requirement="antiphon[$extras]${INPUT_VERSION:+==$INPUT_VERSION}"
if [ -n "${INPUT_REQUIREMENT:-}" ]; then
  requirement="antiphon[$extras] @ $INPUT_REQUIREMENT"
  if [ -e "$INPUT_REQUIREMENT" ]; then
    requirement="$INPUT_REQUIREMENT[$extras]"
  fi
fi
home="${RUNNER_TEMP:-/tmp}/antiphon-env"
python3 -m venv "$home"
"$home/bin/python" -m pip install --quiet --disable-pip-version-check "$requirement"
"$home/bin/antiphon" --version
# A directory with this one program, so that no python of ours shadows that of the project.
mkdir -p "$home/only"
ln -sf ../bin/antiphon "$home/only/antiphon"
echo "$home/only" >> "$GITHUB_PATH"
