"use strict";

/* All heads as small matrices. */

function drawOverview() {}
