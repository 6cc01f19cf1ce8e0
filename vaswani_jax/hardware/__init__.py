"""Programs as compiled for accelerators that are not here: facts, then estimates."""
