cat > linuxkubeletconfig.json <<'EOF'
{"cpuManagerPolicy": "static", "topologyManagerPolicy": "restricted"}
EOF
