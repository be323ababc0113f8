//! The program, run by real shells in homes of their own: real processes, real compiles, real sockets. What stands in
//! is the graphics card and its compiler (`tests/fixtures/llama`).

mod apply;
mod compile;
#[path = "../../../../../tests/it/support/damage.rs"]
mod damage;
mod home;
mod http;
mod processes;
mod real;
mod refusals;
mod secrets;
mod serve;
mod stop;
mod survive;
mod text;
mod update;
