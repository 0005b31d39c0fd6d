/**
 * Tests of how ranks find each other: every bootstrap gives the same rounds and the same errors.
 */
package io.weft.collectives.bootstrap;
