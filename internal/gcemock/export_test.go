package gcemock

// Methods are the names of all methods that are served.
func Methods() []string {
	var names []string
	for _, route := range routes() {
		names = append(names, route.method)
	}
	return names
}

// EndJournal makes every further line of the journal fail to be written.
func (s *Server) EndJournal() error {
	s.Lock()
	defer s.Unlock()
	return s.journal.file.Close()
}
