package quality

// Asks is what a Monitor asks of each message.
func Asks(text string) (Class, bool) { return asks(text) }
