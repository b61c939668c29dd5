package remote

// RemoveFor removes as much of a folder as there is time for.
var RemoveFor = Folder.removeFor
