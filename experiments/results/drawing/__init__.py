"""Tools of all figures and pages: figures as plain dictionaries, the style of arms, and plotly.js."""
