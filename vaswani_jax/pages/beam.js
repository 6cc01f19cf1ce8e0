"use strict";

/* The beam search as a tree. */

function drawBeam() {}
