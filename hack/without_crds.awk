# Prints the documents of a YAML stream but for CustomResourceDefinitions: with those, Kubernetes deletes every object
# of their kinds, and the node agents remove the data of every NodeVolume that is deleted.
function flush() {
	if (document !~ /(^|\n)kind: CustomResourceDefinition\n/) printf "---\n%s", document
	document = ""
}
/^---$/ { flush(); next }
{ document = document $0 "\n" }
END { flush() }
