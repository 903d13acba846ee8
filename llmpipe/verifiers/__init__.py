"""Rules that judge a response, one a file."""
