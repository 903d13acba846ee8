"""What tests in every room share."""
