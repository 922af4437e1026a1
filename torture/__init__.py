"""Kill processes at random points, fill the disk, read while others write: nothing may be lost."""
