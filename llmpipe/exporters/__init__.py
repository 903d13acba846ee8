"""What trainers read, one trainer's form a file."""
