package volumes

// Keys of what the manager writes to a VolumeAttachment's metadata, and a kubelet hands
// on: the name that the device has on the node, and the serial that it must have.
const (
	deviceMetadata = "device"
	serialMetadata = "serial"
)

// Attachment is how a volume's disk is found on the node that it was attached to.
type Attachment struct {
	// Device is the name that the disk has there, and Serial what it must tell: a name
	// may lead to the disk that had it before.
	Device, Serial string
}

// AttachmentOf is what an attachment's metadata says; nil if it doesn't say all of it.
func AttachmentOf(metadata map[string]string) *Attachment {
	found := Attachment{Device: metadata[deviceMetadata], Serial: metadata[serialMetadata]}
	if found.Device == "" || found.Serial == "" {
		return nil
	}
	return &found
}
