/**
 * What every implementation of communicators has to do, as interfaces of tests: an implementation's
 * own test class names its factory and inherits them.
 */
package io.weft.collectives.contract;
