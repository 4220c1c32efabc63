// exp and log in double precision from nothing but IEEE additions, multiplications and divisions. The C
// library picks its own by CPU (with or without fused multiply-add), and sampled tokens must not depend on
// the machine. Within 2 ulp.
#pragma once

namespace godwit::decode {

double portable_exp(double x);  // 0 below -745; x must not be NaN
double portable_log(double x);  // x > 0 and finite

}  // namespace godwit::decode
