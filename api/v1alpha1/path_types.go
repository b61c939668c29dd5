package v1alpha1

// AbsolutePath is a clean absolute path other than "/". It has no empty, "." or
// ".." parts and no trailing slash. It has no characters that end a path in a
// mount option, a mount source or the mount table.
//
// +kubebuilder:validation:MinLength=2
// +kubebuilder:validation:MaxLength=1024
// +kubebuilder:validation:XValidation:rule="self.startsWith('/') && self.substring(1).split('/').all(part, part.size() > 0 && part != '.' && part != '..')",message="must be an absolute path without empty, '.' or '..' parts and without a slash at its end, such as /var/lib/stowage/fast"
// +kubebuilder:validation:XValidation:rule="self.matches('^[^[:cntrl:],:\\\\\\\\]*$')",message="must not contain control characters, commas, colons or backslashes"
type AbsolutePath string

// MountOption is one option of mount(8), such as "noatime" or "timeo=600":
// letters, digits and _ . : = / @ % + -, so that one option can't carry another
// or a shell's syntax.
//
// +kubebuilder:validation:MinLength=1
// +kubebuilder:validation:MaxLength=256
// +kubebuilder:validation:XValidation:rule="self.matches('^[A-Za-z0-9_.:=/@%+-]+$')",message="must be one mount option: letters, digits and _ . : = / @ % + - only"
type MountOption string
