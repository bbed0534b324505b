"""What all figures and pages are drawn with: figures as plain dictionaries, and plotly.js."""
