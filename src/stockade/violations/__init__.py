"""What was refused? Values in words for people, programs and models; a store that no flood breaks."""
