package io.weft.tests.system;

/** Adopted blocks are read in place. */
class AdoptionInPlaceTest extends AdoptionContract {}
