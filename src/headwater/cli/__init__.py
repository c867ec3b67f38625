"""The command `headwater`: one module per command, imported only when that command is called."""
