// The tests of the server need no page.
