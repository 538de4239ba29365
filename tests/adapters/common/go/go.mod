module lowest

go 1.23

require numaproof.example/adapter v0.0.0
