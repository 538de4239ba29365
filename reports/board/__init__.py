"""Builds a website that shows which implementations meet which requirements.

`reading` finds runs, as events or as board data; `digest` turns events into compact `data`;
`standing` combines runs and compares implementations; `views` prepares values for the templates;
`site` writes the website. The same runs produce the same bytes, whatever their order.
"""
