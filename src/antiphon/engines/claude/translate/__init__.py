"""From the CLI's lines to ACP's updates: pure, no I/O, no clock. `translator.Translator` is the way in, `news` is what comes out."""
