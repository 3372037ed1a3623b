"""Put executions on the queue: by hand, or from Harbor's own marks; or turn the queue into Harbor's marks."""

from harbor_refresh.tasks.management.verbs import marks_add, marks_export, marks_import

HELP = "put executions on the queue, and import or export the marks of Harbor"
VERBS = {"add": marks_add, "import": marks_import, "export": marks_export}
