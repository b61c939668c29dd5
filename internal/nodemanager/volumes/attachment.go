package volumes

// Keys of a VolumeAttachment's metadata, which the manager writes and a kubelet passes on: the
// device's name on the node, and its serial.
const (
	deviceMetadata = "device"
	serialMetadata = "serial"
)

// Attachment identifies an attached disk on its node.
type Attachment struct {
	// Device is the disk's name there, and Serial the serial that it must have: the name may
	// still lead to the previous disk. Drivers of other projects have other metadata.
	Device, Serial string
	// Metadata is all that the VolumeAttachment says; nil for disks of Stowage's.
	Metadata map[string]string
}

// AttachmentOf reads an attachment's metadata; nil if it identifies no disk of Stowage's.
func AttachmentOf(metadata map[string]string) *Attachment {
	found := Attachment{Device: metadata[deviceMetadata], Serial: metadata[serialMetadata]}
	if found.Device == "" || found.Serial == "" {
		return nil
	}
	return &found
}
