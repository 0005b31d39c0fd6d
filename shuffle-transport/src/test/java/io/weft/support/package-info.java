/** What tests of this module share. Nothing here outlives the test that made it. */
package io.weft.support;
