"""What is measured, by whom, and what must be reached."""
