"""What can be called: signatures become models, models become definitions, definitions stand in toolsets."""
