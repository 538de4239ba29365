// What every adapter in Go shares; they name this folder with `replace`.
module numaproof.example/adapter

go 1.23
