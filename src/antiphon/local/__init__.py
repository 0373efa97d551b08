"""The files and commands of this machine, as both SDKs offer them to the other side. Knows nothing of ACP."""
