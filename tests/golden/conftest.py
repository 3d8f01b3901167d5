# A script that puts this folder's parent on the path; run by hand.
collect_ignore = ["bless.py"]
