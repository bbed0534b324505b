"""Times of tables: dates, texts, Unix times, and time zones."""
