package requests

// Remove shows that a NodeVolume is gone, as a watch or a list does.
func Remove(r *Requests, object any) { r.remove(object) }

// IsEmpty reports whether nothing is remembered.
func IsEmpty(r *Requests) bool { return len(r.volumes) == 0 && len(r.sums) == 0 }
