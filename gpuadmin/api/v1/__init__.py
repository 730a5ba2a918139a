"""Version 1, one file per noun. Ids are uids; units stand in names; unknown is null."""
