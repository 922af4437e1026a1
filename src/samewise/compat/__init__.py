"""What lets programs written for other packages use samewise: `metric_learn`."""
