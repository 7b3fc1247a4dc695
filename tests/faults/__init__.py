"""What may break: processes killed at any instruction, machines that lose power."""
