"use strict";

/* The weights of one head as a matrix. */

function drawMatrix() {
  byId("drawing").replaceChildren();
}
