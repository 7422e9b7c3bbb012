package token

type Model struct {
	Name, Provider, Counter, Images string
	Estimated                       bool
}
