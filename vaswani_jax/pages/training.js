"use strict";

/* How translation and heads form over the checkpoints. */

function drawTraining() {}
