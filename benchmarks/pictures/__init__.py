"""One module a picture: the experiment it draws, the name of the file, and the drawing."""
