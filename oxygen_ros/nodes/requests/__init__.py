"""What people and programs ask of the node: dialogue, scene graph, instruction."""
